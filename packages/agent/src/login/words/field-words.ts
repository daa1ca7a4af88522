import { WordList } from './word-list.ts'

/* Names of fields and verification methods, in the languages of `page-words.ts`. */

export const password = new WordList([
  'password|passwd|passphrase|pass phrase|passwort|kennwort|mot de passe|contrasena|clave|senha|palavra-passe|wachtwoord|haslo|пароль|sifre|parola',
  'パスワード|暗証番号|密码|密碼|口令|비밀번호|암호|كلمة المرور|كلمة السر|الرقم السري|סיסמה|סיסמא',
])

export const newPassword = new WordList([
  'new password|confirm password|repeat password|retype password|create password|choose a password|create a password|choose password',
  'neues passwort|passwort wiederholen|passwort bestätigen|nouveau mot de passe|confirmer le mot de passe|nueva contrasena|confirmar contrasena|nova senha|confirmar senha|confirmar palavra-passe|nuova password|conferma password|nieuw wachtwoord|bevestig wachtwoord|nowe haslo|powtorz haslo|новый пароль|повторите пароль|yeni sifre|sifre tekrar',
  '新しいパスワード|パスワード確認|パスワード（確認）|新密码|确认密码|確認密碼|새 비밀번호|비밀번호 확인|تأكيد كلمة المرور|كلمة مرور جديدة|סיסמה חדשה|אימות סיסמה',
])

export const username = new WordList([
  'username|user name|user id|userid|user|login|login name|login id|account|account name|account id|member id|member number|customer number|customer id|handle|email or username|nickname|identifier|screen name|email or phone',
  'benutzername|benutzerkennung|nutzername|anmeldename|kundennummer|mitgliedsnummer|kennung|zugangsnummer|teilnehmernummer',
  "nom d'utilisateur|identifiant|pseudo|nom d utilisateur|numero client",
  'usuario|nombre de usuario|numero de cliente|identificador|documento|dni',
  'nome de usuario|nome de utilizador|utilizador|cpf',
  'nome utente|utente|codice cliente|codice utente|id utente',
  'gebruikersnaam|klantnummer|gebruiker',
  'nazwa uzytkownika|uzytkownik|identyfikator|numer klienta',
  'имя пользователя|логин|пользователь|номер клиента|учетная запись',
  'kullanici adi|kullanici|musteri numarasi|uye no',
  'ユーザー名|ユーザーid|ユーザid|ログインid|会員番号|アカウント|お客様番号|会員id|id',
  '用户名|账号|帐号|帳號|用戶名|会员名|使用者名稱|账户',
  '아이디|사용자 이름|사용자명|계정|회원번호',
  'اسم المستخدم|المستخدم|اسم الدخول',
  'שם משתמש|משתמש|מספר לקוח',
])

export const email = new WordList([
  'email|e-mail|mail|email address|e-mail-adresse|e-mailadres|adresse e-mail|courriel|correo|correo electronico|e-mail address|endereco de email|indirizzo email|posta elettronica|adres e-mail|adres email|эл. почта|электронная почта|почта|e-posta|eposta',
  'メールアドレス|メール|邮箱|电子邮件|邮件地址|電子郵件|信箱|이메일|메일|البريد الإلكتروني|بريد إلكتروني|البريد|דוא"ל|אימייל|דואר אלקטרוני|מייל|דוא״ל',
])

export const phone = new WordList([
  'phone|mobile|phone number|mobile number|cell|telephone|telefon|handynummer|mobilnummer|telefonnummer|handy|telephone portable|numero de telephone|mobile phone|telefono|movil|celular|telemovel|telefone|numero di telefono|cellulare|telefoonnummer|mobiel|numer telefonu|телефон|номер телефона|мобильный|cep telefonu|telefon numarasi',
  '電話番号|携帯電話|携帯番号|手机|手机号|手機|电话|電話|휴대폰|전화번호|휴대전화|رقم الهاتف|الهاتف|الجوال|טלפון|נייד|מספר טלפון',
])

/** The user's organization, which business software asks for first. */
export const tenant = new WordList([
  'workspace|tenant|subdomain|organization|organisation|company|company domain|team|team url|site url|site address|instance|realm|school|institution|server|server url',
  'arbeitsbereich|mandant|firma|unternehmen|subdomain|instanz|schule|einrichtung',
  'espace de travail|entreprise|societe|sous-domaine|organisation|etablissement|ecole',
  'espacio de trabajo|empresa|organizacion|subdominio|compania|area de trabajo|organizacao|escola|escuela',
  'area di lavoro|azienda|organizzazione|sottodominio|scuola|werkruimte|bedrijf|organisatie',
  'firma|organizacja|szkola|domena|организация|компания|рабочее пространство|calisma alani|sirket|kurum',
  'ワークスペース|会社|組織|企業|テナント|工作区|公司|组织|企业|租户|組織|워크스페이스|회사|조직|مساحة العمل|الشركة|المؤسسة|ארגון|חברה',
])

/** One-time codes. */
export const code = new WordList([
  'code|verification code|security code|one-time code|one-time password|one time password|one-time passcode|passcode|otp|2fa|mfa|2fa code|pin|6-digit code|six-digit code|token|authentication code|confirmation code|login code|access code|two-factor code|digit code',
  'bestätigungscode|sicherheitscode|einmalcode|verifizierungscode|einmalpasswort|prüfcode|tan|zugangscode',
  "code de verification|code de securite|code a usage unique|code de confirmation|code d'acces|mot de passe a usage unique",
  'codigo|codigo de verificacion|codigo de seguridad|clave de un solo uso|codigo de verificacao|codigo de seguranca|codigo de acesso|codigo de acceso',
  'codice|codice di verifica|codice di sicurezza|codice monouso',
  'verificatiecode|beveiligingscode|eenmalige code|toegangscode',
  'kod|kod weryfikacyjny|kod bezpieczenstwa|kod jednorazowy|kod sms',
  'код|код подтверждения|одноразовый код|проверочный код|код безопасности',
  'dogrulama kodu|guvenlik kodu|tek kullanimlik sifre|onay kodu|kodu',
  '認証コード|確認コード|ワンタイムパスワード|セキュリティコード|検証コード|コード|認証番号',
  '验证码|驗證碼|动态码|校验码|安全码|动态密码|一次性密码|驗證代碼',
  '인증번호|인증 코드|인증코드|보안 코드|확인 코드',
  'رمز التحقق|رمز|كود التحقق|رمز التأكيد',
  'קוד|קוד אימות|קוד אבטחה|קוד חד פעמי|קוד חד-פעמי',
])

export const backupCode = new WordList([
  'backup code|backup codes|recovery code|recovery codes|scratch code|emergency code|wiederherstellungscode|backup-code|ersatzcode|code de secours|code de recuperation|codigo de respaldo|codigo de recuperacion|codigo de recuperacao|codice di backup|codice di recupero|herstelcode|back-upcode|kod zapasowy|kod odzyskiwania|резервный код|код восстановления|yedek kod|kurtarma kodu',
  'バックアップコード|リカバリーコード|回復コード|备用码|恢复代码|恢复码|備用碼|백업 코드|복구 코드|رمز احتياطي|رمز الاسترداد|קוד גיבוי|קוד שחזור',
])

export const totp = new WordList([
  'authenticator|authenticator app|authentication app|totp|google authenticator|microsoft authenticator|authy|code generator|2fa app|app code|verification app|1password|one-time password app',
  "authentifizierungs-app|authenticator-app|authentifikator|application d'authentification|appli d'authentification|aplicacion de autenticacion|app de autenticacion|aplicativo de autenticacao|app de autenticacao|app di autenticazione|app autenticatore|verificatie-app|aplikacja uwierzytelniajaca|aplikacji uwierzytelniajacej|приложение для аутентификации|приложения для аутентификации|приложение-аутентификатор|аутентификатор|kimlik dogrulama uygulamasi|dogrulayici uygulama",
  '認証アプリ|認証システムアプリ|身份验证器|验证器|驗證器|身份验证应用|인증 앱|인증기|otp 앱|تطبيق المصادقة|אפליקציית אימות|אפליקציית האימות|מאמת',
])

export const sms = new WordList([
  'sms|text message|text|text me|texted|text a code|by text|mobile message|sent to your phone|to your phone number|message to your phone|phone ending|whatsapp',
  'textnachricht|per sms|an ihr handy|an ihre telefonnummer|par sms|message texte|a votre telephone|mensaje de texto|a tu telefono|a su telefono|mensagem de texto|para o seu telefone|messaggio di testo|al tuo telefono|sms-bericht|naar je telefoon|wiadomosc sms|na numer telefonu|смс|на ваш телефон|на номер|kisa mesaj|telefonunuza',
  'ショートメッセージ|携帯電話に|電話番号に|短信|手机短信|簡訊|发送至手机|문자|문자 메시지|휴대폰으로|رسالة نصية|رسالة قصيرة|مسرون|הודעת טקסט|מסרון|לטלפון שלך',
])

export const call = new WordList([
  'call|call me|phone call|voice call|automated call|anruf|anrufen|per anruf|appel|appelez-moi|appel telephonique|appel vocal|llamada|llamame|llamada telefonica|chamada|ligacao|ligar para mim|chiamata|chiamami|bellen|bel mij|telefonisch|polaczenie|zadzwon|позвонить|звонок|telefon aramasi|ara beni|beni ara',
  '音声通話|電話で|通話|语音电话|电话呼叫|語音電話|来电|전화로|음성 통화|مكالمة|اتصال هاتفي|שיחה קולית|שיחת טלפון',
])

export const push = new WordList([
  'push|push notification|notification|notify me|tap yes|approve|approve a request|use my app|prompt on your phone|approve on your phone|duo push|send me a push|google prompt|confirm on your phone|approve a notification|mobile app approval',
  'benachrichtigung|push-benachrichtigung|auf dem handy bestätigen|in der app bestätigen|app-freigabe|freigeben|notification push|approuver|notificacion|aprobar|notificacao|aprovar|notifica push|notifica|approva|melding|pushmelding|goedkeuren|powiadomienie|zatwierdz|уведомление|push-уведомление|bildirim|onaylayin',
  'プッシュ通知|通知を承認|アプリで承認|推送通知|推送|在手机上确认|푸시|푸시 알림|알림|إشعار|הודעת דחיפה|התראה',
])

export const passkey = new WordList([
  'passkey|passkeys|security key|webauthn|fido|fido2|face id|touch id|windows hello|fingerprint|yubikey|biometric|hardware key|face, fingerprint',
  "sicherheitsschlüssel|passschlüssel|fingerabdruck|cle de securite|cle d'acces|cle d'identification|empreinte|llave de seguridad|llave de acceso|clave de acceso|huella|chave de seguranca|chave de acesso|impressao digital|chiave di sicurezza|impronta|beveiligingssleutel|toegangssleutel|vingerafdruk|klucz bezpieczenstwa|klucz dostepu|odcisk|ключ безопасности|ключ доступа|ключа доступа|отпечаток|guvenlik anahtari|gecis anahtari|parmak izi",
  'パスキー|セキュリティキー|指紋|生体認証|通行密钥|安全密钥|密碼金鑰|通行金鑰|指纹|패스키|보안 키|지문|مفتاح المرور|مفتاح الأمان|بصمة|מפתח גישה|מפתח אבטחה|טביעת אצבע',
])

/** "Use another method". */
export const otherMethod = new WordList([
  "another way|other way|other ways|different way|another method|other method|different method|other options|more options|try another|use another method|choose another|other sign-in options|sign-in options|sign in another way|can't use this|i can't use|use a different verification|other verification|more choices|more ways|having trouble",
  'andere methode|andere option|andere möglichkeit|anders anmelden|auf andere weise|weitere optionen|andere optionen|auf anderem weg|anmeldeoptionen|alternative methode',
  "autre methode|autre moyen|autrement|autres options|une autre facon|essayer autrement|d'une autre maniere|autre option|options de connexion",
  'otra forma|otro metodo|otra manera|otras opciones|probar otro|mas opciones|otro modo|opciones de inicio',
  'outra forma|outro metodo|outra maneira|outras opcoes|tentar de outro|mais opcoes|outro modo',
  'un altro modo|altro metodo|altre opzioni|in un altro modo|metodo alternativo|prova un altro|opzioni di accesso',
  'andere manier|andere opties|op een andere|aanmeldingsopties|meer opties',
  'inny sposob|inna metoda|inne opcje|w inny sposob|wyprobuj inny|wiecej opcji',
  'другой способ|другим способом|другие способы|другие варианты|другой метод|иначе',
  'baska bir yol|baska yol|farkli bir yontem|diger secenekler|baska yontem|diger yontemler',
  '別の方法|他の方法|その他の方法|ほかの方法|他のオプション|サインイン オプション',
  '其他方式|另一种方式|其他方法|其他选项|换一种方式|其他登录方式|其他登入方式|試試其他|换个方式',
  '다른 방법|다른 옵션|기타 방법|로그인 옵션',
  'طريقة أخرى|خيارات أخرى|بطريقة أخرى',
  'דרך אחרת|שיטה אחרת|אפשרויות אחרות|אפשרויות נוספות|בדרך אחרת',
])

/** "Use a password instead". */
export const withWords = new WordList([
  'with|using|via|use|mit|per|mittels|avec|par|via|con|usando|usar|com|utiliza|utiliser|met|gebruik|z|przez|uzyj|через|с помощью|использовать|ile|kullan|continue|sign in|log in|weiter|anmelden|continuer|continuar|continua|doorgaan|kontynuuj|zaloguj|войти|продолжить|devam|giris|connexion|se connecter|connect|accedi|entrar|iniciar',
  'で続ける|でログイン|でサインイン|で続行|を使用|使用|登录|继续|登入|통해|로그인|계속|باستخدام|المتابعة|עם|באמצעות|المتابعه',
])

/** Headings of pages that ask for additional verification. */
export const verification = new WordList([
  "verify|verification|two-step|two-factor|2-step|2fa|mfa|multi-factor|multifactor|confirm your identity|confirm it's you|prove it's you|security check|authentication method|authenticate|how do you want|choose how|choose a method|get a code|get your code|additional security|second factor|how would you like|where should we send|identity check",
  'verifizier|bestätigen sie|bestätige|zwei-faktor|zwei-schritt|zweistufig|bestätigung|verifizierung|identität|wie möchten sie|sicherheitsprüfung|zweiter faktor|zweiten faktor',
  "verifiez|double authentification|deux etapes|deux facteurs|verification en deux|confirmez votre identite|comment souhaitez|comment voulez|confirmez que c'est|choisissez une methode",
  'verifica|verificacion|verificar|dos pasos|dos factores|confirma tu identidad|como quieres|confirma que eres|elige un metodo|comprobacion',
  'verifique|verificacao|duas etapas|dois fatores|confirme sua identidade|como deseja|confirme a sua identidade|escolha um metodo',
  'verifica in due|due passaggi|due fattori|conferma la tua identita|come vuoi|scegli un metodo|autenticazione a due',
  'verifieer|verificatie|twee stappen|tweestaps|bevestig je identiteit|hoe wil je|identiteit|tweefactor',
  'weryfikacja|weryfikacji|dwuetapow|dwuskladnikow|potwierdz tozsamosc|potwierdz swoja|jak chcesz|wybierz metode',
  'подтверждение|подтвердите|двухэтапн|двухфакторн|двухфакторная|проверка|выберите способ|личность',
  'dogrulama|dogrulayin|iki adimli|iki faktorlu|kimliginizi|nasil|iki asamali',
  '本人確認|二段階|2段階|二要素|確認方法|認証方法|認証|受け取り方法|2 段階',
  '验证|驗證|两步|双重|身份验证|选择验证|兩步|二次验证|安全验证|两步验证',
  '본인 확인|2단계|인증 방법|인증|이중 인증',
  'التحقق|خطوتين|المصادقة|تأكيد هويتك|بخطوتين',
  'אימות|אימות דו|דו-שלבי|זהותך|שני שלבים|בחר דרך',
])

export const chooseAccount = new WordList([
  "choose an account|pick an account|select an account|choose account|choose your account|select account|who's signing in|choose a profile|which account|choose a workspace|select a workspace|choose your workspace|choose your organization|select an organization|choose an organization|select your organization|select organization|pick a workspace|choose a tenant|select a profile|select your account",
  'konto auswählen|konto wählen|wählen sie ein konto|wähle ein konto|organisation auswählen|choisir un compte|selectionnez un compte|choisissez un compte|selectionner un compte|choisissez une organisation|elige una cuenta|selecciona una cuenta|seleccionar cuenta|elegir cuenta|seleccione una cuenta|escolha uma conta|selecione uma conta|escolher uma conta|scegli un account|seleziona un account|scegli account|kies een account|account kiezen|selecteer een account|wybierz konto|wybierz organizacje|выберите аккаунт|выбор аккаунта|выберите учетную запись|bir hesap secin|hesap secin|hesap sec',
  'アカウントの選択|アカウントを選択|选择账户|选择帐户|选择账号|选择一个帐户|選擇帳戶|계정 선택|اختر حسابا|اختيار حساب|اختر حسابًا|בחר חשבון|בחירת חשבון',
])

export const useOtherAccount = new WordList([
  'use another account|use a different account|add account|sign in to another|anderes konto|utiliser un autre compte|usar otra cuenta|usar outra conta|usa un altro account|een ander account|uzyj innego konta|другой аккаунт|сменить аккаунт|baska bir hesap|別のアカウント|使用其他帐户|使用其他账号|다른 계정|حساب آخر|חשבון אחר',
])
